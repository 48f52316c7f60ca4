import { createSqliteBackend } from "../sqlite-backend.ts";

// A process to be killed: `node shrinking.fixture.ts <path>`. It opens a storage, of which most is free space.

const [path = ""] = process.argv.slice(2);
await createSqliteBackend({ path });
process.stdout.write("opened\n");
