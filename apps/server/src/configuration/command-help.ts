import { explained, help } from "./help.ts";
import type { AnySetting } from "./setting.ts";
import { settings } from "./settings.ts";

/** What the help of a command of `plinth-server` says. */
interface CommandHelp {
	readonly purpose: string;
	readonly usage: string;
	readonly explanation: string;
	/** The settings that the command uses. None if it takes no flags. */
	readonly settings?: readonly AnySetting[];
}

const ofFiles = [settings.config, settings.dataDir, settings.logLevel];

const commands: ReadonlyMap<string, CommandHelp> = new Map([
	[
		"new-token",
		{
			purpose: "prints a new token, and its hash for the access file",
			usage: "new-token",
			explanation:
				"The token is a secret of the caller. The access file of the server has only the hash, with the\nsubject of the caller.",
		},
	],
	[
		"backup",
		{
			purpose: "backs up the sqlite storage of a server that is not running",
			usage: "backup <file> [flags]",
			explanation:
				"The file must not exist. To back up the storage of a running server, use plinth backup <file>.",
			settings: ofFiles,
		},
	],
	[
		"restore",
		{
			purpose: "replaces the sqlite storage of a server that is not running by a backup",
			usage: "restore <file> [flags]",
			explanation:
				"The whole backup is checked before anything is replaced. The replaced storage is kept: its new\nname is printed.",
			settings: ofFiles,
		},
	],
	[
		"etcd-restored",
		{
			purpose: "declares that etcd was restored while no server was running",
			usage: "etcd-restored --storage etcd --etcd-endpoints <url,…> [flags]",
			explanation:
				"Run it once after a restore of etcd, before the first server is started: versions continue above\nall that were issued before.",
			settings: [
				settings.config,
				settings.storage,
				...Object.values(settings).filter(({ path }) => path.startsWith("etcd.")),
			],
		},
	],
	[
		"version",
		{
			purpose: "prints the version of plinth-server, as --version does",
			usage: "version",
			explanation: "",
		},
	],
]);

/** The output of `--help` of a command; the help of `plinth-server` for any other word. */
export function commandHelp(command: string | undefined): string {
	const found = command === undefined ? undefined : commands.get(command);
	if (found === undefined) {
		return help;
	}
	const { purpose, usage, explanation, settings: used } = found;
	const lines = [
		`plinth-server ${command}: ${purpose}`,
		"",
		"Usage:",
		`  plinth-server ${usage}`,
		...(explanation === "" ? [] : ["", explanation]),
	];
	const flags =
		used === undefined
			? []
			: [
					"",
					"The other flags of a server are accepted too, so that its configuration can be used as it is.",
					"",
					"Flags:",
					`${used.map(explained).join("")}  --help\n      print this text`,
				];
	return `${[...lines, ...flags].join("\n")}\n`;
}
