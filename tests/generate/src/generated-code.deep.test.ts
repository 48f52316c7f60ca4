import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { addController, addType } from "@plinth/scaffold/generate";
import { expect, it, onTestFinished } from "vitest";
import { command, type LinkedProject, linkedProject, stop } from "./linked-project.fixture.ts";

async function generate(project: LinkedProject): Promise<void> {
	const from = project.root;
	const fields = "size:uint32,lifetime:duration,serial:int64";
	await project.run(
		...["node", command("plinth"), "generate", "type", "Zone"],
		...["--scope", "namespace", "--references", "Site:block", "--field", fields],
	);
	await addType({ from, name: "Region", scope: "cluster" });
	// Names that are words of TypeScript, or that generated code uses.
	await addType({ from, name: "Class", references: ["Zone:cascade,default=Zone:unset,Site"] });
	await addType({ from, name: "Watch", references: ["parent=Watch:unset,package=Zone"] });
	await addType({ from, name: "Data", references: ["id=Watch"] });
	await addType({ from, name: "Message" });
	const controllers = [
		{ name: "ZonePlanner", manages: "Zone", watches: ["Site"] },
		{ name: "ZoneKeeper", manages: "Zone", watches: ["Site,Class,Region"], writes: "Message" },
		{ name: "ClassChecker", manages: "Class", watches: ["Zone", "Site"] },
		{ name: "WatchKeeper", manages: "Watch", watches: ["Data", "Zone"], writes: "Site" },
		{ name: "RegionKeeper", manages: "Region", writes: "Data" },
		{ name: "SiteAuditor", manages: "Site" },
	];
	for (const controller of controllers) {
		await addController({ from, ...controller });
	}
	await project.run("plinth", "generate", "code");
}

it("generated types and controllers pass all checks of a project, and a server keeps what is referenced", async () => {
	const project = await linkedProject();
	await generate(project);
	expect(await project.run("buf", "lint", "proto")).toBe("");
	expect(await project.run("buf", "format", "--diff", "--exit-code", "proto")).toBe("");
	expect(await project.run("tsc", "-p", ".")).toBe("");
	expect(
		await project.run("node", "--test", "--test-isolation=none", "--test-reporter=tap"),
	).toContain("\n# fail 0\n");

	const server = await startServer(project);
	const plinth = (...args: readonly string[]) =>
		project.run("node", command("plinth"), ...args, "--server", server);
	await plinth("apply", "-f", "resources/site.yaml", "-f", "resources/zone.yaml");
	expect(await plinth("explain", "Site", "url")).toContain(
		"comment: The server refuses a site whose URL breaks these rules.",
	);
	await expect(plinth("delete", "Site", "plinth")).rejects.toThrow(
		"can't be deleted: it is referenced by",
	);
	await plinth("wait", "Zone", "example", "--for=condition=Ready");
	await plinth("delete", "Zone", "example", "--wait");
	await plinth("delete", "Site", "plinth", "--wait");
});

/** Starts a server with the module of the project, and resolves to its address. */
async function startServer({ root }: LinkedProject): Promise<string> {
	const server = spawn(
		process.execPath,
		[
			command("plinth-server"),
			...["--module", "src/module.ts", "--listen", "127.0.0.1:0", "--data-dir", ".plinth/data"],
		],
		{ cwd: root, stdio: ["ignore", "pipe", "ignore"] },
	);
	onTestFinished(() => stop(server));
	const lines: string[] = [];
	for await (const line of createInterface({ input: server.stdout })) {
		lines.push(line);
		const address = /http:\/\/[\d.:]+/.exec(line)?.[0];
		if (address !== undefined) {
			return address;
		}
	}
	throw new Error(`the server did not start:\n${lines.join("\n")}`);
}
