import type { AnySetting } from "./setting.ts";
import { allSettings } from "./settings.ts";

const width = 100;
const indent = 6;

/** What `--help` prints. */
export const help = `plinth-server: resources, controllers and their API on one port

  plinth-server [flags]            serve
  plinth-server new-token          make a token, and its hash for the access file
  plinth-server backup <file>      copy the sqlite storage of a server that does not run
  plinth-server restore <file>     put such a copy in its place; what was there is kept
  plinth-server etcd-restored      declare that etcd was restored while no server ran

Each flag is a variable of the environment too, as PLINTH_ETCD_CA_FILE for --etcd-ca-file, and a key
of the file that --config names, as caFile under etcd. Flags come first, then the environment.

${allSettings.map(explained).join("")}  --help
      this text
`;

function explained(setting: AnySetting): string {
	const usage =
		setting.placeholder === "" ? `--${setting.flag}` : `--${setting.flag} ${setting.placeholder}`;
	const again = setting.kind === "list" ? "; may be repeated" : "";
	const defaultText = setting.defaultText === "" ? "" : ` [${setting.defaultText}]`;
	return `  ${usage}\n${wrapped(`${setting.description}${again}${defaultText}`)}\n`;
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
