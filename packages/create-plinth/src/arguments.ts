import { parseArgs } from "node:util";
import { type PackageManager, packageManagers, suggestion } from "@plinth/scaffold";

/** What the command line says. */
export type Arguments =
	| { readonly kind: "help" }
	| { readonly kind: "version" }
	| {
			readonly kind: "create";
			readonly folder: string;
			readonly install: boolean;
			readonly git: boolean;
			readonly packageManager: PackageManager;
	  };

/** The command line can't be understood. The message says why, and what to do. */
export class UsageError extends Error {
	override readonly name = "UsageError";
}

export const help = `Creates a Plinth project: a type, a controller with its test, and a server to run them.

  npm create plinth@latest FOLDER

FOLDER is created; its last part is the name of the project. "." is the working directory, which must be empty.

  --no-install            do not install dependencies
  --no-git                do not create a git repository
  --package-manager NAME  ${packageManagers.join(" or ")}; by default, the one that runs this command
  --help                  print this text
  --version               print the version

npm takes flags for itself: write -- before them, as in npm create plinth@latest my-platform -- --no-git`;

const options = {
	"no-install": { type: "boolean" },
	"no-git": { type: "boolean" },
	"package-manager": { type: "string" },
	help: { type: "boolean", short: "h" },
	version: { type: "boolean", short: "v" },
} as const;

/**
 * Parses the command line.
 *
 * @param userAgent - `npm_config_user_agent`, by which package managers name themselves, as in `pnpm/12.21.0 …`.
 * @throws UsageError.
 */
export function parseArguments(args: readonly string[], userAgent: string | undefined): Arguments {
	const { values, positionals } = parsed(args);
	if (values.help) {
		return { kind: "help" };
	}
	if (values.version) {
		return { kind: "version" };
	}
	const [folder, ...others] = positionals;
	if (folder === undefined || folder === "") {
		throw new UsageError("name the folder to create, as in npm create plinth@latest my-platform");
	}
	if (others.length > 0) {
		throw new UsageError(
			`name one folder: there are ${positionals.length}, ${positionals.join(", ")}`,
		);
	}
	return {
		...{ kind: "create", folder },
		install: values["no-install"] !== true,
		git: values["no-git"] !== true,
		packageManager: packageManagerOf(values["package-manager"], userAgent),
	};
}

function parsed(args: readonly string[]) {
	try {
		return parseArgs({ args: [...args], options, allowPositionals: true });
	} catch (error) {
		// The first sentence names the flag; the others are about positional arguments.
		const [reason = ""] = (error instanceof Error ? error.message : String(error)).split(/\.\s/);
		throw new UsageError(explained(reason));
	}
}

/** An error of `parseArgs`, which calls flags options, in the words of the other messages. */
function explained(reason: string): string {
	const [, unknown] = /^Unknown option '(.*)'$/.exec(reason) ?? [];
	if (unknown !== undefined) {
		const known = Object.keys(options).map((flag) => `--${flag}`);
		return `unknown flag ${unknown}${suggestion(unknown, known)}`;
	}
	const [, flag, problem] = /^Option '(?:-\w, )?(--[\w-]+)[^']*' (.*)$/.exec(reason) ?? [];
	switch (problem) {
		case "argument missing":
		case "argument is ambiguous":
			return `${flag} needs a value`;
		case "does not take an argument":
			return `${flag} takes no value`;
		default:
			return reason.charAt(0).toLowerCase() + reason.slice(1).replaceAll("option", "flag");
	}
}

function packageManagerOf(
	wanted: string | undefined,
	userAgent: string | undefined,
): PackageManager {
	const running = userAgent?.split("/")[0];
	const found = packageManagers.find((name) => name === (wanted ?? running));
	if (found === undefined && wanted !== undefined) {
		throw new UsageError(
			`a project can't be set up for the package manager ${wanted}: choose ${packageManagers.join(" or ")}`,
		);
	}
	return found ?? "npm";
}
