extern "C" { fn prove_on_device() -> i32; }
pub fn prove() -> i32 { unsafe { prove_on_device() } }
