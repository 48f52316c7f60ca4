import {
	type Context,
	readConfiguration,
	writeConfiguration,
} from "../configuration/config-file.ts";
import { checkServer, findContext, tokenOf } from "../configuration/settings.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { usageFailure } from "../failure.ts";
import type { OutputFormat } from "../output/print-resources.ts";
import type { Session } from "../session.ts";
import { type AddCommand, outputOption } from "./runner.ts";
import { show } from "./types.ts";

/** `plinth context`: manages the contexts of the configuration file. */
export const addContext: AddCommand = (program, run) => {
	const context = program
		.command("context")
		.description("manage contexts: named servers in the configuration file");
	context
		.command("list")
		.description("print the contexts, without their tokens; CURRENT marks the default")
		.addOption(outputOption())
		.action(({ output }: { output: OutputFormat }) =>
			run(async (session) => list(session, output)),
		);
	context
		.command("set <name>")
		.summary("create or update a context")
		.description(
			"create or update a context. It stores the values of --server, --partition, --namespace, --ca-file, --certificate-file and --key-file, and the token of --token or --token-file. Values whose flags are omitted are kept, but a new --server drops the token",
		)
		.action((name: string) => run(async (session) => set(session, name)));
	context
		.command("use <name>")
		.description("make a context the default: commands use it without --context")
		.action((name: string) => run(async (session) => use(session, name)));
	context
		.command("delete <name>")
		.description("delete a context from the configuration file")
		.action((name: string) => run(async (session) => remove(session, name)));
};

function read(session: Session) {
	return readConfiguration(session.configFile, (warning) => session.warn(warning));
}

function list(session: Session, output: OutputFormat): ExitCode {
	const { current, contexts } = read(session);
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
		session.io.out(show(rows, output, session.io));
	}
	return exitCodes.ok;
}

function set(session: Session, name: string): ExitCode {
	const configuration = read(session);
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
	writeConfiguration(session.configFile, {
		current: configuration.current ?? name,
		contexts: { ...configuration.contexts, [name]: context },
	});
	const isCurrent = (configuration.current ?? name) === name;
	const hint = isCurrent ? "" : `; make it the default with: plinth context use ${name}`;
	session.io.out(`context ${name} ${before === undefined ? "created" : "updated"}${hint}\n`);
	return exitCodes.ok;
}

function use(session: Session, name: string): ExitCode {
	const configuration = read(session);
	findContext(configuration.contexts, name);
	writeConfiguration(session.configFile, { ...configuration, current: name });
	session.io.out(`context ${name} is now the default\n`);
	return exitCodes.ok;
}

function remove(session: Session, name: string): ExitCode {
	const { current, contexts } = read(session);
	findContext(contexts, name);
	const { [name]: _, ...others } = contexts;
	writeConfiguration(session.configFile, {
		contexts: others,
		...(current !== undefined && current !== name && { current }),
	});
	session.io.out(`context ${name} deleted\n`);
	return exitCodes.ok;
}
