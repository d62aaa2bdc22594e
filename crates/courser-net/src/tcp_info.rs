//! What the kernel knows of a TCP connection: bytes, segments, round trips (tcp(7), TCP_INFO).

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// A connection's counters since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes of data sent, those sent again included, headers not; `None` before Linux 4.19.
    pub bytes_sent: Option<u64>,
    /// Bytes of data sent again; `None` before Linux 4.19.
    pub bytes_retransmitted: Option<u64>,
    /// Bytes the peer has acknowledged; our SYN and FIN count as one each (RFC 4898, ThruOctetsAcked).
    pub bytes_acked: u64,
    /// Bytes received in order, each once; the peer's FIN counts as one.
    pub bytes_received: u64,
    /// Segments sent, with or without data, SYN and retransmissions included.
    pub segments_out: u32,
    /// Segments received, with or without data.
    pub segments_in: u32,
    /// Segments sent that carried data.
    pub data_segments_out: u32,
    /// Segments received that carried data.
    pub data_segments_in: u32,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Smoothed round-trip time (RFC 6298); zero before the first measurement.
    pub rtt: Duration,
    /// Shortest round-trip time of late.
    pub min_rtt: Duration,
    /// Time since data last came; before any, since the connection was made. As fine as the kernel's clock ticks, some
    /// milliseconds.
    pub last_received: Duration,
    /// Largest payload of a segment sent, bytes: the MSS less options.
    pub segment_size: u32,
    /// Both sides send timestamps (RFC 7323): twelve bytes more in the header of every segment.
    pub timestamps: bool,
}

impl TcpInfo {
    pub(crate) fn of(socket: &impl AsFd) -> io::Result<Self> {
        let (raw, length) = read(socket)?;
        Self::from_raw(&raw, length)
    }

    /// An older kernel knows only the first `length` bytes.
    fn from_raw(raw: &Raw, length: usize) -> io::Result<Self> {
        if length < offset_of!(Raw, delivery_rate) {
            let text = "this kernel counts no segments of a connection: Linux 4.6 or later does";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let since_4_19 = |bytes| (length >= offset_of!(Raw, dsack_dups)).then_some(bytes);
        let microseconds = |value: u32| Duration::from_micros(value.into());
        Ok(Self {
            bytes_sent: since_4_19(raw.bytes_sent),
            bytes_retransmitted: since_4_19(raw.bytes_retrans),
            bytes_acked: raw.bytes_acked,
            bytes_received: raw.bytes_received,
            segments_out: raw.segs_out,
            segments_in: raw.segs_in,
            data_segments_out: raw.data_segs_out,
            data_segments_in: raw.data_segs_in,
            retransmitted: raw.total_retrans,
            rtt: microseconds(raw.rtt),
            min_rtt: microseconds(raw.min_rtt),
            last_received: Duration::from_millis(raw.last_data_recv.into()),
            segment_size: raw.snd_mss,
            timestamps: raw.options & OPTION_TIMESTAMPS != 0,
        })
    }
}

/// Connections in a listening socket's accept queue, and its limit (`tcpi_unacked`, `tcpi_sacked`; net/ipv4/tcp.c,
/// tcp_get_info).
pub(crate) fn accept_queue(socket: &impl AsFd) -> io::Result<(u32, u32)> {
    read(socket).map(|(raw, _)| (raw.unacked, raw.sacked))
}

/// The counters of `socket`, and how many bytes of them the kernel knew.
fn read(socket: &impl AsFd) -> io::Result<(Raw, usize)> {
    let mut raw = Raw::default();
    let mut length: libc::socklen_t = size_of::<Raw>().try_into().expect("a few hundred bytes");
    #[expect(unsafe_code, reason = "no library has the kernel's layout of today")]
    // SAFETY: `raw` has room for the `length` bytes that the kernel may write at most, both pointers are to locals that
    // live through the call, and `Raw` is made of integers only, for which any bytes are a value.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((raw, usize::try_from(length).unwrap_or(0)))
}

/// TCPI_OPT_TIMESTAMPS (linux/tcp.h).
const OPTION_TIMESTAMPS: u8 = 1;

/// `struct tcp_info` of linux/tcp.h as of Linux 6.1; later kernels append, and give us this much.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Raw {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    window_scales: u8,
    flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernels() {
        // Offsets in linux/tcp.h, by its field sizes.
        assert_eq!(offset_of!(Raw, rto), 8);
        assert_eq!(offset_of!(Raw, total_retrans), 100);
        assert_eq!(offset_of!(Raw, bytes_acked), 120);
        assert_eq!(offset_of!(Raw, delivery_rate), 160);
        assert_eq!(offset_of!(Raw, bytes_sent), 200);
        assert_eq!(size_of::<Raw>(), 232);
    }

    #[test]
    fn what_an_older_kernel_does_not_know_is_not_zero() {
        let raw = Raw { segs_out: 7, bytes_sent: 9, ..Raw::default() };
        let current = TcpInfo::from_raw(&raw, size_of::<Raw>()).unwrap();
        assert_eq!((current.segments_out, current.bytes_sent), (7, Some(9)));
        let linux_4_9 = TcpInfo::from_raw(&raw, offset_of!(Raw, delivered)).unwrap();
        assert_eq!((linux_4_9.segments_out, linux_4_9.bytes_sent), (7, None));
        let linux_3_10 = TcpInfo::from_raw(&raw, offset_of!(Raw, pacing_rate)).unwrap_err();
        assert_eq!(linux_3_10.kind(), io::ErrorKind::Unsupported);
    }
}
