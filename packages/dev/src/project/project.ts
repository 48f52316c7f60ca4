import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { findTool } from "../tools/run-tool.ts";
import { type DevContext, DevError, type DevFlags } from "./dev-options.ts";

/** The parts of a project that `plinth dev` works with. */
export interface Project {
	readonly folder: string;
	/** The folder of the module, absolute. */
	readonly codeFolder: string;
	/** The program that generates code, and what it depends on, if the project generates code. */
	readonly generator?: { readonly program: string; readonly inputs: readonly string[] };
	/** The program that checks types, if there is one. */
	readonly typeChecker?: string;
}

/**
 * Looks at a project.
 *
 * @throws DevError that says what is missing, and how to get it.
 */
export function findProject(flags: DevFlags, { folder }: DevContext): Project {
	const module = resolve(folder, flags.module);
	if (!existsSync(module)) {
		throw new DevError(
			`there is no module ${flags.module} in ${folder}: run plinth dev in the folder of a project, name another module with --module <file>, or create a project with npm create plinth@latest`,
		);
	}
	if (!statSync(module).isFile()) {
		throw new DevError(
			`module ${flags.module} is not a file: name the file that exports the module`,
		);
	}
	if (!hasInstalled(folder)) {
		throw new DevError(`the packages of ${folder} are not installed: run npm install`);
	}
	const generator = flags.generate ? findGenerator(flags, folder) : undefined;
	const typeChecker = flags.check ? findTypeChecker(folder) : undefined;
	return {
		folder,
		codeFolder: dirname(module),
		...(generator && { generator }),
		...(typeChecker !== undefined && { typeChecker }),
	};
}

/** Whether packages are installed for the folder, or for one above it. */
function hasInstalled(folder: string): boolean {
	return (
		existsSync(join(folder, "node_modules")) ||
		(dirname(folder) !== folder && hasInstalled(dirname(folder)))
	);
}

/** What to do if buf can't be found. */
export const bufIsMissing =
	"buf, which generates code as buf.gen.yaml says, is not installed: run npm install --save-dev @bufbuild/buf @bufbuild/protoc-gen-es";

function findGenerator(flags: DevFlags, folder: string): Project["generator"] {
	const configuration = join(folder, "buf.gen.yaml");
	if (!existsSync(configuration)) {
		return undefined;
	}
	const program = findTool(folder, "buf");
	if (program === undefined) {
		throw new DevError(`${bufIsMissing}, or start with --no-generate`);
	}
	return {
		program,
		inputs: [resolve(folder, flags.proto), configuration, join(folder, "buf.yaml")],
	};
}

function findTypeChecker(folder: string): string | undefined {
	return existsSync(join(folder, "tsconfig.json")) ? findTool(folder, "tsc") : undefined;
}
