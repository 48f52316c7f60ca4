import leven from "leven";
import { namesOf, type SettingNames } from "./setting.ts";
import { allSettings } from "./settings.ts";

/** Settings that were renamed: the old key in a configuration file, and the new one. */
const renamedSettings: ReadonlyMap<string, string> = new Map([
	["limits.watchesPerToken", "limits.streamsPerSubject"],
]);

/** Flags of etcd and kube-apiserver, and the flag that does the same here. */
const otherFlags: ReadonlyMap<string, string> = new Map([
	["cert-file", "tls-cert-file"],
	["client-ca-file", "tls-client-ca-file"],
	["etcd-cafile", "etcd-ca-file"],
	["etcd-certfile", "etcd-cert-file"],
	["etcd-keyfile", "etcd-key-file"],
	["etcd-servers", "etcd-endpoints"],
	["h", "help"],
	["key-file", "tls-key-file"],
	["listen-client-urls", "listen"],
	["port", "listen"],
	["tls-private-key-file", "tls-key-file"],
	["trusted-ca-file", "tls-client-ca-file"],
]);

/**
 * The name that was probably meant by an unknown one of the same kind: what it was renamed to, what another program
 * calls so, or the most similar one. `undefined` if there is none. Flags are without their leading hyphens.
 */
export function didYouMean(kind: keyof SettingNames, unknown: string): string | undefined {
	for (const [old, current] of renamedSettings) {
		if (namesOf(old)[kind] === unknown) {
			return namesOf(current)[kind];
		}
	}
	const known = allSettings.map((setting) => setting[kind]);
	const other = kind === "flag" ? otherFlags.get(unknown) : undefined;
	return other ?? nearest(unknown, kind === "flag" ? [...known, "help", "version"] : known);
}

/** The most similar known name, if any is similar. Ignores case, and differences between `-` and `_`. */
export function nearest(unknown: string, known: readonly string[]): string | undefined {
	const text = plain(unknown);
	// Two swapped letters have distance two.
	let limit = Math.max(2, Math.floor(text.length / 4));
	let best: string | undefined;
	for (const name of known) {
		const distance = leven(text, plain(name));
		if (distance <= limit) {
			best = name;
			limit = distance - 1;
		}
	}
	return best;
}

function plain(name: string): string {
	return name.toLowerCase().replaceAll(/[-_]/g, "");
}
