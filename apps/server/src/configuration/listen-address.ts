import { BlockList, isIP } from "node:net";

/** The address that a listener listens on. */
export interface ListenAddress {
	/** A host name or an address, without brackets. */
	readonly host: string;
	/** 0 means any free port. */
	readonly port: number;
}

const pattern = /^(?:\[(?<v6>[0-9A-Fa-f:.]+)\]|(?<host>[^:[\]\s]+)):(?<port>\d{1,5})$/;

/** Parses `host:port` or `[v6]:port`. Returns `undefined` if the value is neither. */
export function parseListenAddress(value: string): ListenAddress | undefined {
	const groups = pattern.exec(value)?.groups;
	const host = groups?.v6 ?? groups?.host;
	const port = Number(groups?.port);
	if (host === undefined || port > 65_535 || (groups?.v6 !== undefined && isIP(host) !== 6)) {
		return undefined;
	}
	return { host, port };
}

/** `host:port`, with brackets around an IPv6 address. */
export function formatListenAddress(address: ListenAddress): string {
	return `${isIP(address.host) === 6 ? `[${address.host}]` : address.host}:${address.port}`;
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether only programs on this machine can reach the address. */
export function isLoopback(address: ListenAddress): boolean {
	switch (isIP(address.host)) {
		case 4:
			return loopback.check(address.host, "ipv4");
		case 6:
			return loopback.check(address.host, "ipv6");
		default:
			return address.host === "localhost";
	}
}
