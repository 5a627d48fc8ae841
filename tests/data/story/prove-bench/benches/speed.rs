//! Timed by hand, as criterion does: `cargo bench` builds it, then runs it.
use std::time::Instant;

fn main() {
    let began = Instant::now();
    let seconds = groth16_cuda::prove();
    eprintln!("took {:?}", began.elapsed());
    println!("benched: proof in {seconds} s");
}
