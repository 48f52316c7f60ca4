import type { AnySetting } from "./setting.ts";
import { allSettings } from "./settings.ts";

const width = 100;
const indent = 6;

/** The output of `--help`. */
export const help = `plinth-server: a control plane that serves resources and runs controllers

Usage:
  plinth-server [flags]            run a server
  plinth-server agent [flags]      forward calls to servers
  plinth-server new-token          print a new token, and its hash for the access file
  plinth-server backup <file>      back up the sqlite storage of a server that is not running
  plinth-server restore <file>     restore such a backup; the replaced storage is kept
  plinth-server etcd-restored      declare that etcd was restored while no server was running
  plinth-server version            print the version of plinth-server, as --version does

plinth-server <command> --help prints the help of a command, with its flags. The flags below are those of a server.

Each flag can also be set by an environment variable, such as PLINTH_ETCD_CA_FILE for --etcd-ca-file, or by
a key in the file that --config names, such as caFile under etcd. Flags override environment variables, and
those override the file.

Flags:
${allSettings.map(explained).join("")}  --help
      print this text
`;

/** The flag of a setting and what it does, for the help of a command. */
export function explained(setting: AnySetting): string {
	const usage =
		setting.placeholder === "" ? `--${setting.flag}` : `--${setting.flag} ${setting.placeholder}`;
	const repeatable = setting.kind === "list" ? "; may be repeated" : "";
	const defaultText = setting.defaultText === "" ? "" : ` (default: ${setting.defaultText})`;
	return `  ${usage}\n${wrapped(`${setting.description}${repeatable}${defaultText}`)}\n`;
}

function wrapped(text: string): string {
	const lines = [""];
	for (const word of text.split(" ")) {
		const line = `${lines.at(-1)}${lines.at(-1) === "" ? "" : " "}${word}`;
		if (line.length > width - indent) {
			lines.push(word);
		} else {
			lines[lines.length - 1] = line;
		}
	}
	return lines.map((line) => `${" ".repeat(indent)}${line}`).join("\n");
}
