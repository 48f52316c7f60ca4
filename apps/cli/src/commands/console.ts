import { exitCodes } from "../exit-codes.ts";
import { warn } from "../warn.ts";
import type { AddCommand } from "./runner.ts";

/** `plinth console`: opens the console of the server in a browser. */
export const addConsole: AddCommand = (program, run) => {
	program
		.command("console")
		.description("open the console of the server, a web page")
		.option("--print", "only print its URL")
		.action(({ print = false }: { readonly print?: boolean }) =>
			run(async (session) => {
				const { io } = session;
				const { settings } = await session.server();
				const url = `${settings.endpoint.server.replace(/\/$/, "")}/console/`;
				io.out(`${url}\n`);
				if (!print && !(await io.openUrl(url))) {
					warn(io, "no browser could be started: open this URL in one");
				}
				return exitCodes.ok;
			}),
		);
};
