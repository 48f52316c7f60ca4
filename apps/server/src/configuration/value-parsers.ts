import { labelProblem } from "@plinth/resource";
import {
	hostForm,
	originForm,
	parseHostName,
	parseOrigin,
} from "../listener/origin/host-header.ts";
import { type ListenAddress, parseListenAddress } from "./listen-address.ts";
import { BadValue } from "./setting.ts";

/** Any text that is not empty. */
export function text(value: string): string {
	return value;
}

/** A valid name of a resource. */
export function label(value: string): string {
	const problem = labelProblem(value);
	if (problem !== undefined) {
		throw new BadValue(problem);
	}
	return value;
}

/** A host and a port. */
export function address(value: string): ListenAddress {
	const parsed = parseListenAddress(value);
	if (parsed === undefined) {
		throw new BadValue(
			"is not <host>:<port>, such as 127.0.0.1:7575 or [::1]:7575, with a port up to 65535",
		);
	}
	return parsed;
}

/** One of the words. */
export function oneOf<Word extends string>(...words: readonly Word[]): (value: string) => Word {
	return (value) => {
		const word = words.find((each) => each === value);
		if (word === undefined) {
			throw new BadValue(`is not one of ${words.join(", ")}`);
		}
		return word;
	};
}

const sizeUnits: Readonly<Record<string, number>> = {
	"": 1,
	B: 1,
	KiB: 1024,
	MiB: 1024 ** 2,
	GiB: 1024 ** 3,
	kB: 1000,
	MB: 1000 ** 2,
	GB: 1000 ** 3,
};

/** A number of bytes above 0, such as `2GiB`. */
export function size(value: string): number {
	const groups = /^(?<number>\d+(?:\.\d+)?) ?(?<unit>[A-Za-z]*)$/.exec(value)?.groups;
	const unit = sizeUnits[groups?.unit ?? ""];
	const bytes = Math.floor(Number(groups?.number) * (unit ?? Number.NaN));
	if (!(bytes > 0) || !Number.isSafeInteger(bytes)) {
		throw new BadValue("is not a size above 0, such as 512MiB or 2GiB");
	}
	return bytes;
}

const durationUnits: Readonly<Record<string, number>> = {
	ms: 1,
	s: 1_000,
	m: 60_000,
	h: 3_600_000,
};

/** A duration above 0, such as `10s`, in milliseconds. */
export function duration(value: string): number {
	const groups = /^(?<number>\d+(?:\.\d+)?) ?(?<unit>ms|s|m|h)$/.exec(value)?.groups;
	const milliseconds = Number(groups?.number) * (durationUnits[groups?.unit ?? ""] ?? Number.NaN);
	if (!(milliseconds > 0) || !Number.isFinite(milliseconds)) {
		throw new BadValue("is not a duration above 0 with a unit, such as 500ms, 10s or 5m");
	}
	return milliseconds;
}

/** A whole number above 0. */
export function count(value: string): number {
	const parsed = /^\d+$/.test(value) ? Number(value) : Number.NaN;
	if (!(parsed > 0) || !Number.isSafeInteger(parsed)) {
		throw new BadValue("is not a whole number above 0");
	}
	return parsed;
}

/** An `http` or `https` URL. */
export function url(value: string): URL {
	const parsed = URL.canParse(value) ? new URL(value) : undefined;
	if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol)) {
		throw new BadValue("is not an http or https URL");
	}
	return parsed;
}

/** The URL of an etcd member. */
export function etcdEndpoint(value: string): string {
	const parsed = URL.canParse(value) ? new URL(value) : undefined;
	if (
		parsed === undefined ||
		!["http:", "https:"].includes(parsed.protocol) ||
		parsed.pathname !== "/"
	) {
		throw new BadValue(
			"is not the URL of an etcd member, such as http://127.0.0.1:2379; separate several by commas",
		);
	}
	return parsed.origin;
}

/** A host name without a port. */
export function hostName(value: string): string {
	return parsedAs(parseHostName(value), hostForm);
}

/** The origin of web pages. */
export function webOrigin(value: string): string {
	return parsedAs(parseOrigin(value), originForm);
}

function parsedAs(parsed: string | undefined, form: string): string {
	if (parsed === undefined) {
		throw new BadValue(form);
	}
	return parsed;
}

/** The address of a server, as a URL without a path; `http` if the scheme is absent. */
export function serverAddress(value: string): string {
	const url = serverUrl(value);
	if (url === undefined) {
		throw new BadValue(
			"is not the address of a server, such as a:7575 or https://a.example:7575; separate several by commas",
		);
	}
	return url;
}

/** The same; `undefined` if it is none. */
export function serverUrl(value: string): string | undefined {
	const address = /^https?:\/\//.test(value) ? value : `http://${value}`;
	const parsed = URL.canParse(address) ? new URL(address) : undefined;
	const hasPort = /:\d+\/?$/.test(value);
	return parsed === undefined || !hasPort || parsed.pathname !== "/" || parsed.username !== ""
		? undefined
		: parsed.origin;
}
