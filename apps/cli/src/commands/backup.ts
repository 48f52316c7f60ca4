import type { AddCommand } from "./runner.ts";

/** `plinth backup`: writes a backup of the storage of a running server to a local file. */
export const addBackup: AddCommand = (program, run) => {
	program
		.command("backup <file>")
		.description("write a backup of the server's embedded storage to a local file")
		.action((path: string) =>
			run(
				async (session) => {
					const { backup } = await import("../actions/backup.ts");
					return backup(session, path);
				},
				{ finishesUnread: true },
			),
		);
};
