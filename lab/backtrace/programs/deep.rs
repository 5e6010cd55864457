// Threads wait 20 calls deep; prints "ready".
use std::{hint::black_box, thread, time::Duration};

#[inline(never)]
fn deep(left: u32) -> u32 {
    if left > 0 {
        return black_box(deep(black_box(left) - 1)) + 1;
    }
    thread::sleep(Duration::from_secs(600));
    0
}

fn main() {
    let made = thread::spawn(|| deep(20));
    thread::sleep(Duration::from_secs(1));
    println!("ready");
    deep(20);
    made.join().unwrap();
}
