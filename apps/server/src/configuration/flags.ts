import { parseArgs } from "node:util";
import { type EtcdChoice, etcdChoice, refuseEtcdFlags } from "./etcd-flags.ts";
import {
	formatListenAddress,
	isLoopback,
	type ListenAddress,
	parseListenAddress,
} from "./listen-address.ts";
import { UsageError } from "./usage-error.ts";

/** What the flags say. */
export interface Configuration {
	readonly listen: ListenAddress;
	readonly dataDirectory: string;
	readonly storage: "sqlite" | "memory" | "etcd";
	/** Where etcd is, if that is the storage. */
	readonly etcd?: EtcdChoice;
	/** Paths of module files, as given. */
	readonly modules: readonly string[];
}

/** What the command line asks for. */
export type Command =
	| { readonly kind: "help" }
	| { readonly kind: "serve"; readonly configuration: Configuration };

/** What `--help` prints. */
export const help = `plinth-server: resources, controllers and their API on one port

  --listen <host:port>     where to listen; port 0 takes a free one   [127.0.0.1:7575]
  --data-dir <folder>      where the sqlite storage keeps its files   [./data]
  --storage sqlite|memory|etcd
                           memory forgets everything when it stops    [sqlite]
  --etcd-endpoints <url,…> the members of etcd, as http://127.0.0.1:2379
  --etcd-prefix <prefix>   what all keys begin with: servers that share it are one cluster
                                                                      [/plinth]
  --etcd-ca-file <file>, --etcd-cert-file <file>, --etcd-key-file <file>
                           PEM files: whose certificates to trust, and the server's own
  --etcd-user <name>, --etcd-password-file <file>
                           where etcd asks who it is
  --module <file>          types and controllers of an application: a TypeScript or JavaScript
                           file whose default export is defineModule({…}); may be repeated
  --help                   this text
`;

const options = {
	listen: { type: "string" },
	"data-dir": { type: "string" },
	storage: { type: "string" },
	"etcd-endpoints": { type: "string" },
	"etcd-prefix": { type: "string" },
	"etcd-ca-file": { type: "string" },
	"etcd-cert-file": { type: "string" },
	"etcd-key-file": { type: "string" },
	"etcd-user": { type: "string" },
	"etcd-password-file": { type: "string" },
	module: { type: "string", multiple: true },
	help: { type: "boolean" },
} as const;

type FlagName = keyof typeof options;

/**
 * Reads the arguments that follow the program's name.
 *
 * @throws UsageError that names the argument which is unknown, malformed, repeated or lacks a value.
 */
export function parseCommandLine(args: readonly string[]): Command {
	const flags = collectFlags(args);
	if (flags.has("help")) {
		return { kind: "help" };
	}
	const storage = storageFlag(last(flags, "storage") ?? "sqlite");
	const etcd = etcdFlags(storage, (name) => last(flags, name));
	return {
		kind: "serve",
		configuration: {
			listen: listenFlag(last(flags, "listen") ?? "127.0.0.1:7575"),
			dataDirectory: last(flags, "data-dir") ?? "./data",
			storage,
			...(etcd && { etcd }),
			modules: flags.get("module") ?? [],
		},
	};
}

function last(flags: ReadonlyMap<FlagName, readonly string[]>, name: FlagName): string | undefined {
	return flags.get(name)?.at(-1);
}

function collectFlags(args: readonly string[]): ReadonlyMap<FlagName, readonly string[]> {
	// Not strict: its own messages name neither the known flags nor the way out.
	const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
	const flags = new Map<FlagName, string[]>();
	for (const token of tokens) {
		if (token.kind === "option-terminator") {
			continue;
		}
		if (token.kind === "positional") {
			throw new UsageError(
				`unexpected argument ${JSON.stringify(token.value)}: all arguments are flags, see --help`,
			);
		}
		const { name, rawName, value, inlineValue } = token;
		if (!isFlagName(name)) {
			throw new UsageError(`unknown flag ${rawName}: ${knownFlags()}`);
		}
		if (options[name].type === "boolean") {
			if (value !== undefined) {
				throw new UsageError(`${rawName} takes no value, got ${JSON.stringify(value)}`);
			}
			flags.set(name, []);
			continue;
		}
		if (value === undefined || value === "") {
			throw new UsageError(`${rawName} needs a value, see --help`);
		}
		if (!inlineValue && value.startsWith("-")) {
			throw new UsageError(
				`${rawName} needs a value, got the flag ${value}; a value that starts with a hyphen is written ${rawName}=${value}`,
			);
		}
		const given = flags.get(name) ?? [];
		if (given.length > 0 && !("multiple" in options[name])) {
			throw new UsageError(`${rawName} is given twice: give it once`);
		}
		flags.set(name, [...given, value]);
	}
	return flags;
}

function isFlagName(name: string): name is FlagName {
	return Object.hasOwn(options, name);
}

function knownFlags(): string {
	return `known are ${Object.keys(options)
		.map((name) => `--${name}`)
		.join(", ")}`;
}

function listenFlag(value: string): ListenAddress {
	const address = parseListenAddress(value);
	if (address === undefined) {
		throw new UsageError(
			`--listen ${JSON.stringify(value)} is not <host>:<port>, as 127.0.0.1:7575 or [::1]:7575, with a port up to 65535`,
		);
	}
	if (!isLoopback(address)) {
		throw new UsageError(
			`--listen ${formatListenAddress(address)} is beyond this machine, where everyone who reaches it would have full rights: listen on 127.0.0.1 or [::1], and let a proxy that checks who calls pass calls on`,
		);
	}
	return address;
}

function storageFlag(value: string): Configuration["storage"] {
	if (value !== "sqlite" && value !== "memory" && value !== "etcd") {
		throw new UsageError(`--storage ${JSON.stringify(value)} is neither sqlite, memory nor etcd`);
	}
	return value;
}

function etcdFlags(
	storage: Configuration["storage"],
	flag: Parameters<typeof etcdChoice>[0],
): EtcdChoice | undefined {
	if (storage === "etcd") {
		return etcdChoice(flag);
	}
	refuseEtcdFlags(flag);
	return undefined;
}
