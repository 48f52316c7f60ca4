import type { ResolvedConfig } from "./resolved-config.ts";
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
export function etcdChoice(config: ResolvedConfig): EtcdChoice {
	together(config, settings.etcdCertFile, settings.etcdKeyFile);
	together(config, settings.etcdUser, settings.etcdPasswordFile);
	const endpoints = config.all(settings.etcdEndpoints);
	if (endpoints.length === 0) {
		throw new UsageError("--storage etcd needs --etcd-endpoints, as http://127.0.0.1:2379");
	}
	const [prefix, caFile, certFile, keyFile] = [
		config.get(settings.etcdPrefix),
		config.get(settings.etcdCaFile),
		config.get(settings.etcdCertFile),
		config.get(settings.etcdKeyFile),
	];
	const [user, passwordFile] = [
		config.get(settings.etcdUser),
		config.get(settings.etcdPasswordFile),
	];
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
export function refuseEtcdSettings(config: ResolvedConfig): void {
	const useless = etcdSettings.find((setting) => config.has(setting));
	if (useless !== undefined) {
		throw new UsageError(`${config.nameOf(useless)} is for --storage etcd`);
	}
}

/** Two settings that make sense only together. */
export function together(config: ResolvedConfig, one: AnySetting, other: AnySetting): void {
	if (config.has(one) !== config.has(other)) {
		throw new UsageError(
			`${config.nameOf(one)} and ${config.nameOf(other)} are given together or not at all`,
		);
	}
}
