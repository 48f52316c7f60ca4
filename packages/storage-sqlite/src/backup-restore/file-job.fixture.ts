import { writeSync } from "node:fs";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { backupFile, restoreFile } from "./backup-restore.ts";

// A process to be killed: `node file-job.fixture.ts <job> <path> <other>`. The job is `backup` or `restore`,
// of the file or (`…-open`) of an open storage. Reports `begun` and `done`.

const [job = "", path = "", other = ""] = process.argv.slice(2);

async function open(body: (backend: Awaited<ReturnType<typeof createSqliteBackend>>) => unknown) {
	const backend = await createSqliteBackend({ path });
	report("begun");
	await body(backend);
	await backend.close();
}

function report(line: string): void {
	writeSync(1, `${line}\n`);
}

switch (job) {
	case "backup":
		report("begun");
		await backupFile({ path, to: other });
		break;
	case "backup-open":
		await open((backend) => backend.backup({ to: other }));
		break;
	case "restore":
		report("begun");
		await restoreFile({ path, from: other });
		break;
	case "restore-open":
		await open((backend) => backend.restore({ from: other }));
		break;
}
report("done");
