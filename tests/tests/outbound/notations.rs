//! Random notations of IPv4 addresses: an address that is not public is always rejected.

use std::net::Ipv4Addr;

use outbound::address::is_public;

use crate::{
    Verdict::{Accepted, NotHttps, Private},
    check_all, client,
};

/// Number of addresses.
const ADDRESS_COUNT: usize = 20_000;

#[tokio::test]
async fn private_address_is_rejected_in_every_notation() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let client = client("", &[]);
    let cases = (0..ADDRESS_COUNT).map(|_| {
        let ip = Ipv4Addr::from_bits(some_address(&mut random));
        let text = random_notation(ip, &mut random);
        let verdict = match is_public(ip.into()) {
            false => Private,
            true if text == ip.to_string() => Accepted,
            true => NotHttps,
        };
        (format!("https://{text}/"), verdict)
    });
    check_all(&client, cases).await;
}

/// Returns a random address; half of them are in or near ranges that are not public.
fn some_address(random: &mut fastrand::Rng) -> u32 {
    let special =
        ["10.0.0.0", "127.0.0.0", "169.254.169.254", "172.16.0.0", "192.168.0.0", "224.0.0.0", "0.0.0.0"];
    match random.bool() {
        true => random.u32(..),
        false => {
            let near = special[random.usize(..special.len())].parse::<Ipv4Addr>().unwrap().to_bits();
            near.wrapping_add(random.u32(..512)).wrapping_sub(random.u32(..64))
        }
    }
}

fn random_notation(ip: Ipv4Addr, random: &mut fastrand::Rng) -> String {
    if random.u8(..4) == 0 {
        return ip.to_string();
    }
    // One to four numbers; the last one covers all remaining bytes.
    let numbers = random.u32(1..=4);
    let first = ip.octets().into_iter().take(numbers as usize - 1).map(u32::from);
    let last = ip.to_bits() & (u32::MAX >> (8 * (numbers - 1)));
    let numbers: Vec<String> = first.chain([last]).map(|it| number(it, random)).collect();
    let mut text = numbers.join(".");
    if random.u8(..8) == 0 {
        text.push('.');
    }
    if random.u8(..3) == 0 { text.chars().map(|it| other_script(it, random)).collect() } else { text }
}

/// Writes a number in decimal, octal or hexadecimal, sometimes with leading zeros.
fn number(value: u32, random: &mut fastrand::Rng) -> String {
    let zeros = "0".repeat(random.usize(..3));
    match random.u8(..4) {
        0 => format!("0{zeros}{value:o}"),
        1 => format!("0x{zeros}{value:x}"),
        2 => format!("0X{zeros}{value:X}"),
        _ => value.to_string(),
    }
}

/// Returns the character, or sometimes its equivalent in another script.
fn other_script(it: char, random: &mut fastrand::Rng) -> char {
    match (it, random.u8(..4)) {
        (_, 0) => it,
        ('.', 1) => '。',
        ('.', 2) => '｡',
        ('.', _) => '．',
        ('1'..='9', 1) => char::from_u32('①' as u32 + it as u32 - '1' as u32).unwrap(),
        ('0'..='9', 2) => char::from_u32('𝟎' as u32 + it as u32 - '0' as u32).unwrap(),
        (_, _) => char::from_u32(it as u32 + 0xfee0).unwrap(),
    }
}
