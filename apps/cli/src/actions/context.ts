import { readConfiguration, writeConfiguration } from "../configuration/config-file.ts";
import type { Configuration, Context } from "../configuration/configuration.ts";
import { assertContext, checkServer, findContext, tokenOf } from "../configuration/settings.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { usageFailure } from "../failure.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { showRecords } from "../output/show-records.ts";
import type { Session } from "../session.ts";
import { warn } from "../warn.ts";

/** @param mayCreate - whether the command creates the file, so that it need not exist. */
function read(
	{ io, configFile, configNamedBy }: Session,
	mayCreate = false,
): Promise<Configuration> {
	const namedBy = mayCreate ? undefined : configNamedBy;
	return readConfiguration(configFile, (warning) => warn(io, warning), namedBy);
}

/** Prints the contexts, without their tokens. */
export async function listContexts(session: Session, output: OutputFormat): Promise<ExitCode> {
	const { current, contexts } = await read(session);
	const rows = Object.entries(contexts).map(([name, context]) => ({
		name,
		current: name === current ? "yes" : "",
		server: context.server,
		partition: context.partition ?? "default",
		namespace: context.namespace ?? "default",
		token: context.token === undefined ? "" : "set",
	}));
	if (rows.length === 0) {
		session.io.err("no contexts; create one with: plinth context set NAME --server URL\n");
	}
	if (rows.length > 0 || output !== "table") {
		session.io.out(await showRecords(rows, output, session.io));
	}
	return exitCodes.ok;
}

/** Creates or updates a context from the flags of the program. */
export async function setContext(session: Session, name: string): Promise<ExitCode> {
	const configuration = await read(session, true);
	const { flags } = session;
	const before = Object.hasOwn(configuration.contexts, name)
		? configuration.contexts[name]
		: undefined;
	const server = flags.server ?? before?.server;
	if (server === undefined) {
		throw usageFailure(`context ${name} requires an address: --server URL`);
	}
	const address = checkServer(server);
	const token = tokenOf(flags, {});
	// A token is only sent to the server for which it was stored.
	const { token: oldToken, ...kept } = before ?? { server };
	const isSameServer = before !== undefined && checkServer(before.server) === address;
	const context: Context = {
		...kept,
		server: address,
		...(isSameServer && oldToken !== undefined && { token: oldToken }),
		...(token !== undefined && { token }),
		...(flags.partition !== undefined && { partition: flags.partition }),
		...(flags.namespace !== undefined && { namespace: flags.namespace }),
		...(flags.caFile !== undefined && { ca_file: flags.caFile }),
		...(flags.certificateFile !== undefined && { certificate_file: flags.certificateFile }),
		...(flags.keyFile !== undefined && { key_file: flags.keyFile }),
	};
	await writeConfiguration(session.configFile, {
		current: configuration.current ?? name,
		contexts: { ...configuration.contexts, [name]: context },
	});
	session.io.out(
		`context ${name} ${before === undefined ? "created" : "updated"}${hint(name, configuration)}\n`,
	);
	return exitCodes.ok;
}

/** Which context is the default now. */
function hint(name: string, { current }: Configuration): string {
	if (current === undefined) {
		return "; it is now the default";
	}
	return current === name ? "" : `; make it the default with: plinth context use ${name}`;
}

/** Makes a context the default. */
export async function useContext(session: Session, name: string): Promise<ExitCode> {
	const configuration = await read(session);
	findContext(configuration.contexts, name);
	await writeConfiguration(session.configFile, { ...configuration, current: name });
	session.io.out(`context ${name} is now the default\n`);
	return exitCodes.ok;
}

/** Deletes a context from the configuration file. */
export async function deleteContext(session: Session, name: string): Promise<ExitCode> {
	const { current, contexts } = await read(session);
	assertContext(contexts, name);
	const { [name]: _, ...others } = contexts;
	await writeConfiguration(session.configFile, {
		contexts: others,
		...(current !== undefined && current !== name && { current }),
	});
	session.io.out(`context ${name} deleted\n`);
	return exitCodes.ok;
}
