import { type AddCommand, wordsOf } from "./runner.ts";

/** `plinth refs`: prints what a resource references, what references it, and what its deletion would do. */
export const addRefs: AddCommand = (program, run) => {
	program
		.command("refs <type> [name]")
		.description(
			"print a resource's references, what references it, and what its deletion would do",
		)
		.action((type: string, name: string | undefined) =>
			run(async (session) => {
				const { refs } = await import("../actions/refs.ts");
				return refs(await session.server(), wordsOf(type, name));
			}),
		);
};
