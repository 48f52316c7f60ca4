import { type AddCommand, wordsOf } from "./runner.ts";

/** `plinth edit`: opens a resource as YAML in an editor, and applies the result. */
export const addEdit: AddCommand = (program, run) => {
	program
		.command("edit <type> [name]")
		.description("edit a resource as YAML in an editor (VISUAL, EDITOR or vi)")
		.action((type: string, name: string | undefined) =>
			run(
				async (session) => {
					const { edit } = await import("../actions/edit.ts");
					return edit(await session.server(), wordsOf(type, name));
				},
				{ finishesUnread: true },
			),
		);
};
