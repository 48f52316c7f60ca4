import { UsageError } from "./usage-error.ts";

/** How the command line says where etcd is. Files are read when the storage is opened. */
export interface EtcdChoice {
	/** URLs of the members. */
	readonly endpoints: readonly string[];
	/** What all keys begin with; `/plinth` where it is absent. */
	readonly prefix?: string;
	/** PEM files for `https` endpoints. */
	readonly tls?: {
		readonly caFile?: string;
		readonly certFile?: string;
		readonly keyFile?: string;
	};
	readonly auth?: { readonly user: string; readonly passwordFile: string };
}

/** The flags that are for etcd, all with a value. */
export const etcdFlagNames = [
	"etcd-endpoints",
	"etcd-prefix",
	"etcd-ca-file",
	"etcd-cert-file",
	"etcd-key-file",
	"etcd-user",
	"etcd-password-file",
] as const;

/** One of them. */
export type EtcdFlagName = (typeof etcdFlagNames)[number];

/**
 * Reads the flags for etcd.
 *
 * @throws UsageError that names the flag which is missing, malformed or useless.
 */
export function etcdChoice(flag: (name: EtcdFlagName) => string | undefined): EtcdChoice {
	const [prefix, caFile, certFile, keyFile] = [
		flag("etcd-prefix"),
		flag("etcd-ca-file"),
		flag("etcd-cert-file"),
		flag("etcd-key-file"),
	];
	const [user, passwordFile] = [flag("etcd-user"), flag("etcd-password-file")];
	together("etcd-cert-file", certFile, "etcd-key-file", keyFile);
	together("etcd-user", user, "etcd-password-file", passwordFile);
	const tls = {
		...(caFile !== undefined && { caFile }),
		...(certFile !== undefined && { certFile }),
		...(keyFile !== undefined && { keyFile }),
	};
	return {
		endpoints: endpoints(flag("etcd-endpoints")),
		...(prefix !== undefined && { prefix }),
		...(Object.keys(tls).length > 0 && { tls }),
		...(user !== undefined && passwordFile !== undefined && { auth: { user, passwordFile } }),
	};
}

/** Refuses flags for etcd where something else stores. */
export function refuseEtcdFlags(flag: (name: EtcdFlagName) => string | undefined): void {
	const given = etcdFlagNames.find((name) => flag(name) !== undefined);
	if (given !== undefined) {
		throw new UsageError(`--${given} is for --storage etcd`);
	}
}

function endpoints(value: string | undefined): readonly string[] {
	if (value === undefined) {
		throw new UsageError("--storage etcd needs --etcd-endpoints, as http://127.0.0.1:2379");
	}
	return value.split(",").map((endpoint) => {
		const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
		if (url === undefined || !["http:", "https:"].includes(url.protocol) || url.pathname !== "/") {
			throw new UsageError(
				`--etcd-endpoints ${JSON.stringify(endpoint)} is not a URL of an etcd member, as http://127.0.0.1:2379; several are separated by commas`,
			);
		}
		return url.origin;
	});
}

function together(
	one: EtcdFlagName,
	oneValue: string | undefined,
	other: EtcdFlagName,
	otherValue: string | undefined,
): void {
	if ((oneValue === undefined) !== (otherValue === undefined)) {
		throw new UsageError(`--${one} and --${other} are given together or not at all`);
	}
}
