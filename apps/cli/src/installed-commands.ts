import type { AddCommand } from "./commands/runner.ts";

/**
 * The further commands of `@plinth/plinth`, if that is installed beside this package: none otherwise. A project with
 * `@plinth/plinth` has both packages, and both have a command `plinth`. npm links the one of the package that comes first
 * by name, which is this one.
 */
export async function installedCommands(): Promise<readonly AddCommand[]> {
	let entry: string;
	try {
		entry = import.meta.resolve("@plinth/plinth/commands");
	} catch {
		return [];
	}
	const { projectCommands }: { readonly projectCommands: readonly AddCommand[] } = await import(
		entry
	);
	return projectCommands;
}
