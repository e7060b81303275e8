package egress

import (
	"net/netip"
	"slices"
)

// privateBlocks lists blocks outside the internet that netip doesn't detect.
var privateBlocks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network
	netip.MustParsePrefix("100.64.0.0/10"),    // shared address space (RFC 6598)
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's service for its VMs
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved
	netip.MustParsePrefix("::/96"),            // IPv4-compatible
	netip.MustParsePrefix("::ffff:0:0:0/96"),  // IPv4-translated (RFC 7915)
	netip.MustParsePrefix("64:ff9b:1::/48"),   // local NAT64
	netip.MustParsePrefix("2001::/32"),        // Teredo
	netip.MustParsePrefix("2002::/16"),        // 6to4
	netip.MustParsePrefix("fec0::/10"),        // site-local
}

// nat64Block contains the IPv4 addresses of IPv6-only networks (RFC 6052).
var nat64Block = netip.MustParsePrefix("64:ff9b::/96")

func isPrivate(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if nat64Block.Contains(ip) {
		whole := ip.As16()
		ip = netip.AddrFrom4([4]byte(whole[12:]))
	}
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() ||
		slices.ContainsFunc(privateBlocks, func(p netip.Prefix) bool { return p.Contains(ip) })
}
