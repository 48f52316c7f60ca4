import leven from "leven";
import { type AnySetting, namesOf, type SettingNames } from "./setting.ts";
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
 *
 * @param accepted the settings of the command.
 */
export function didYouMean(
	kind: keyof SettingNames,
	unknown: string,
	accepted: readonly AnySetting[] = allSettings,
): string | undefined {
	const known = accepted.map((setting) => setting[kind]);
	for (const [old, current] of renamedSettings) {
		const name = namesOf(current)[kind];
		if (namesOf(old)[kind] === unknown && known.includes(name)) {
			return name;
		}
	}
	const other = kind === "flag" ? (otherFlags.get(unknown) ?? "") : "";
	if (known.includes(other) || other === "help") {
		return other;
	}
	return nearest(unknown, kind === "flag" ? [...known, "help", "version"] : known);
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
