import type { metaService as metaServiceOf } from "@plinth/db-constraint";
import type { DeploymentOptions } from "../deployment/deployment-options.ts";
import { formatListenAddress } from "./listen-address.ts";
import type { ResolvedConfig } from "./resolved-config.ts";
import type { AnySetting } from "./setting.ts";
import { settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Not imported as a value: every command reads settings, and the package takes long to load. */
const metaService: typeof metaServiceOf = "meta";

const needService: readonly AnySetting[] = [
	settings.internalListen,
	settings.deploymentRegion,
	settings.deploymentVersion,
	settings.deploymentAddress,
	settings.deploymentMetaAddresses,
	settings.deploymentCredentialFile,
	settings.dropVersionsInUse,
];

/**
 * The settings of the server's deployment; `undefined` if it is not part of one.
 *
 * @throws UsageError that names the setting which is missing or has no effect.
 */
export function deploymentSettings(config: ResolvedConfig): DeploymentOptions | undefined {
	const service = config.get(settings.deploymentService);
	if (service === undefined) {
		const useless = needService.find((setting) => config.has(setting));
		if (useless !== undefined) {
			throw new UsageError(`${config.nameOf(useless)} needs --${settings.deploymentService.flag}`);
		}
		return undefined;
	}
	const needed = [
		settings.deploymentRegion,
		settings.internalListen,
		settings.deploymentCredentialFile,
		...(service === metaService ? [] : [settings.deploymentMetaAddresses]),
	].find((setting) => !config.has(setting));
	const region = config.get(settings.deploymentRegion);
	const internalListen = config.get(settings.internalListen);
	const credentialFile = config.get(settings.deploymentCredentialFile);
	if (
		needed !== undefined ||
		region === undefined ||
		internalListen === undefined ||
		credentialFile === undefined
	) {
		throw new UsageError(
			`${config.nameOf(settings.deploymentService)} needs --${needed?.flag ?? ""}`,
		);
	}
	const address = config.get(settings.deploymentAddress)?.origin;
	if (address === undefined && internalListen.port === 0) {
		throw new UsageError(
			`${config.nameOf(settings.internalListen)} with port 0 needs --${settings.deploymentAddress.flag}`,
		);
	}
	const version = config.get(settings.deploymentVersion);
	return {
		service,
		region,
		internalListen,
		credentialFile,
		address: address ?? `http://${formatListenAddress(internalListen)}`,
		metaAddresses: config.all(settings.deploymentMetaAddresses).map(({ origin }) => origin),
		...(version !== undefined && { version }),
		...(config.get(settings.dropVersionsInUse) && { dropsVersionsInUse: true }),
	};
}
