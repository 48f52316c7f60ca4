import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

it("a child whose supervisor is gone before it has loaded exits", async () => {
	const child = fork(fileURLToPath(new URL("./main.ts", import.meta.url)), [], { execArgv: [] });
	child.disconnect();
	const [code] = await once(child, "exit");
	expect(code).toBe(1);
});
