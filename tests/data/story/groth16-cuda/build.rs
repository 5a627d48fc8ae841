use std::{env, path::PathBuf, process::Command};
fn main() {
    println!("cargo:rerun-if-changed=cuda");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let object = out.join("groth16_cuda.o");
    let archive = out.join("libgroth16_cuda.a");
    let run = |c: &mut Command| assert!(c.status().unwrap().success());
    run(Command::new("nvcc").args(["-O2", "-arch=sm_90", "-Iinclude", "-Xcompiler", "-fPIC", "-c", "cuda/groth16_cuda.cu", "-o"]).arg(&object));
    let _ = std::fs::remove_file(&archive);
    run(Command::new("ar").arg("crs").arg(&archive).arg(&object));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=groth16_cuda");
    println!("cargo:rustc-link-search=native=/usr/local/cuda-13.0/lib64");
    println!("cargo:rustc-link-lib=static=cudart_static");
    for lib in ["stdc++", "rt", "dl", "pthread"] { println!("cargo:rustc-link-lib=dylib={}", lib); }
}
