import { metaService } from "@plinth/db-constraint";
import type { DeploymentOptions } from "../deployment/deployment-options.ts";
import type { Given } from "./given.ts";
import { formatListenAddress } from "./listen-address.ts";
import type { AnySetting } from "./setting.ts";
import { settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

const others: readonly AnySetting[] = [
	settings.internalListen,
	settings.deploymentRegion,
	settings.deploymentVersion,
	settings.deploymentAddress,
	settings.deploymentMetaAddresses,
	settings.deploymentCredentialFile,
];

/**
 * Which deployment the server is, as configured; `undefined` where it is none.
 *
 * @throws UsageError that names the setting which is missing or useless.
 */
export function deploymentChoice(given: Given): DeploymentOptions | undefined {
	const service = given.get(settings.deploymentService);
	if (service === undefined) {
		const useless = others.find((setting) => given.has(setting));
		if (useless !== undefined) {
			throw new UsageError(`${given.nameOf(useless)} needs --${settings.deploymentService.flag}`);
		}
		return undefined;
	}
	const needed = [
		settings.deploymentRegion,
		settings.internalListen,
		settings.deploymentCredentialFile,
		...(service === metaService ? [] : [settings.deploymentMetaAddresses]),
	].find((setting) => !given.has(setting));
	const region = given.get(settings.deploymentRegion);
	const internalListen = given.get(settings.internalListen);
	const credentialFile = given.get(settings.deploymentCredentialFile);
	if (
		needed !== undefined ||
		region === undefined ||
		internalListen === undefined ||
		credentialFile === undefined
	) {
		throw new UsageError(
			`${given.nameOf(settings.deploymentService)} needs --${needed?.flag ?? ""}`,
		);
	}
	const address = given.get(settings.deploymentAddress)?.origin;
	if (address === undefined && internalListen.port === 0) {
		throw new UsageError(
			`${given.nameOf(settings.internalListen)} with port 0 needs --${settings.deploymentAddress.flag}`,
		);
	}
	const version = given.get(settings.deploymentVersion);
	return {
		service,
		region,
		internalListen,
		credentialFile,
		address: address ?? `http://${formatListenAddress(internalListen)}`,
		metaAddresses: given.all(settings.deploymentMetaAddresses).map(({ origin }) => origin),
		...(version !== undefined && { version }),
	};
}
