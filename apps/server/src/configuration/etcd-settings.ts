import type { ResolvedConfig } from "./resolved-config.ts";
import type { AnySetting } from "./setting.ts";
import { settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** How to reach etcd. Files are read when the storage is opened. */
export interface EtcdSettings {
	/** URLs of the members. */
	readonly endpoints: readonly string[];
	/** The prefix of all keys; `/plinth` by default. */
	readonly prefix?: string;
	/** PEM files for `https` endpoints. */
	readonly tls?: {
		readonly caFile?: string;
		readonly certFile?: string;
		readonly keyFile?: string;
	};
	readonly auth?: { readonly user: string; readonly passwordFile: string };
}

const allEtcdSettings: readonly AnySetting[] = [
	settings.etcdEndpoints,
	settings.etcdPrefix,
	settings.etcdCaFile,
	settings.etcdCertFile,
	settings.etcdKeyFile,
	settings.etcdUser,
	settings.etcdPasswordFile,
	settings.advertisedAddress,
];

/**
 * The settings of etcd.
 *
 * @throws UsageError that names the setting which is missing or has no effect.
 */
export function etcdSettings(config: ResolvedConfig): EtcdSettings {
	requireBoth(config, settings.etcdCertFile, settings.etcdKeyFile);
	requireBoth(config, settings.etcdUser, settings.etcdPasswordFile);
	const endpoints = config.all(settings.etcdEndpoints);
	if (endpoints.length === 0) {
		throw new UsageError("--storage etcd needs --etcd-endpoints, such as http://127.0.0.1:2379");
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

/** Refuses settings of etcd if the storage is another one. */
export function refuseEtcdSettings(config: ResolvedConfig): void {
	const useless = allEtcdSettings.find((setting) => config.has(setting));
	if (useless !== undefined) {
		throw new UsageError(`${config.nameOf(useless)} needs --storage etcd`);
	}
}

/** Refuses one of two settings without the other. */
export function requireBoth(config: ResolvedConfig, one: AnySetting, other: AnySetting): void {
	if (config.has(one) !== config.has(other)) {
		throw new UsageError(
			`${config.nameOf(one)} and ${config.nameOf(other)} must be set together: set both or neither`,
		);
	}
}
