fn main() { println!("proof in {} s", groth16_cuda::prove()); }
