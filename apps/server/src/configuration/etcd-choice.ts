import type { Given } from "./given.ts";
import type { AnySetting } from "./setting.ts";
import { settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Where etcd is. Files are read when the storage is opened. */
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

const etcdSettings: readonly AnySetting[] = [
	settings.etcdEndpoints,
	settings.etcdPrefix,
	settings.etcdCaFile,
	settings.etcdCertFile,
	settings.etcdKeyFile,
	settings.etcdUser,
	settings.etcdPasswordFile,
];

/**
 * Where etcd is, as configured.
 *
 * @throws UsageError that names the setting which is missing or useless.
 */
export function etcdChoice(given: Given): EtcdChoice {
	together(given, settings.etcdCertFile, settings.etcdKeyFile);
	together(given, settings.etcdUser, settings.etcdPasswordFile);
	const endpoints = given.all(settings.etcdEndpoints);
	if (endpoints.length === 0) {
		throw new UsageError("--storage etcd needs --etcd-endpoints, as http://127.0.0.1:2379");
	}
	const [prefix, caFile, certFile, keyFile] = [
		given.get(settings.etcdPrefix),
		given.get(settings.etcdCaFile),
		given.get(settings.etcdCertFile),
		given.get(settings.etcdKeyFile),
	];
	const [user, passwordFile] = [given.get(settings.etcdUser), given.get(settings.etcdPasswordFile)];
	const tls = {
		...(caFile !== undefined && { caFile }),
		...(certFile !== undefined && { certFile }),
		...(keyFile !== undefined && { keyFile }),
	};
	return {
		endpoints,
		...(prefix !== undefined && { prefix }),
		...(Object.keys(tls).length > 0 && { tls }),
		...(user !== undefined && passwordFile !== undefined && { auth: { user, passwordFile } }),
	};
}

/** Refuses settings of etcd where something else stores. */
export function refuseEtcdSettings(given: Given): void {
	const useless = etcdSettings.find((setting) => given.has(setting));
	if (useless !== undefined) {
		throw new UsageError(`${given.nameOf(useless)} is for --storage etcd`);
	}
}

/** Two settings that make sense only together. */
export function together(given: Given, one: AnySetting, other: AnySetting): void {
	if (given.has(one) !== given.has(other)) {
		throw new UsageError(
			`${given.nameOf(one)} and ${given.nameOf(other)} are given together or not at all`,
		);
	}
}
