import { BadValue } from "../../configuration/setting.ts";

/** Where an agent finds its servers. */
export type DiscoverySource = FileSource | DnsSource;

/** A file with one address per line. */
export interface FileSource {
	readonly kind: "file";
	/** As in the setting. */
	readonly text: string;
	readonly path: string;
}

/** A name with the addresses of servers. */
export interface DnsSource {
	readonly kind: "dns";
	/** As in the setting. */
	readonly text: string;
	readonly scheme: "http" | "https";
	readonly name: string;
	/** Of the servers, unless SRV records have it. */
	readonly port: number;
	/** Whether the name has SRV records. */
	readonly hasServices: boolean;
}

const form = "is neither dns:<name>[:<port>], such as dns:servers.example:7575, nor file:<path>";

const defaultPort = 7575;

/** A name, with a scheme or a port or both. */
const dnsForm = /^(?:(https?):\/\/)?([A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}))(?::(\d{1,5}))?$/;

/** Parses the setting. @throws BadValue. */
export function discoverySource(text: string): DiscoverySource {
	if (text.startsWith("file:") && text.length > "file:".length) {
		return { kind: "file", text, path: text.slice("file:".length) };
	}
	const match = text.startsWith("dns:") ? dnsForm.exec(text.slice("dns:".length)) : null;
	const [, scheme, name, port] = match ?? [];
	if (name === undefined) {
		throw new BadValue(form);
	}
	const hasServices = name.startsWith("_");
	if (hasServices && port !== undefined) {
		throw new BadValue("has a port, but a name that begins with _ has SRV records with ports");
	}
	const number = port === undefined ? defaultPort : Number(port);
	if (number < 1 || number > 65_535) {
		throw new BadValue("has a port that is not from 1 to 65535");
	}
	return {
		...{ kind: "dns", text, name, hasServices, port: number },
		scheme: scheme === "https" ? "https" : "http",
	};
}
