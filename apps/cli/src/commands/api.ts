import type { ApiFlags } from "../actions/api.ts";
import type { AddCommand } from "./runner.ts";

/** `plinth api`: calls any method of the server. */
export const addApi: AddCommand = (program, run) => {
	program
		.command("api <method>")
		.description(
			"call a method of the server, such as plinth.type.v1.TypeService/ListTypes, and print its response as JSON",
		)
		.option("-d, --data <json>", "the request: JSON, @FILE, or - for standard input", "{}")
		.action((method: string, flags: ApiFlags) =>
			run(async (session) => {
				const { api } = await import("../actions/api.ts");
				return api(await session.server(), method, flags);
			}),
		);
};
