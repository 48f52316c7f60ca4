/** What servers show of controllers that run in agents, over sockets. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { ControllerService } from "@plinth/proto";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { createPlinthTransport } from "@plinth/rpc-client";
import { type Logger, silentLogger } from "@plinth/runtime";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { musicModule } from "../../testdata/music.ts";
import { startServer } from "../started-server.fixture.ts";
import { agency, allReconciled, write } from "./agency.fixture.ts";
import { startTestAgent } from "./started-agent.fixture.ts";

const patiently = { timeout: 300_000, interval: 50 };

function controllersAt(address: string, token?: string) {
	const transport = createPlinthTransport({
		baseUrl: address,
		...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
	});
	onTestFinished(() => transport.close());
	return createClient(ControllerService, transport);
}

describe("the controllers of an agent", () => {
	it("are shown by its server until it stops", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const agent = await startTestAgent([server.address], {}, { modules: [agency().module] });
		await write(server, "miles");
		await allReconciled(server, "miles");
		const client = controllersAt(server.address);
		const shown = async () => {
			const { controllers, agents, servers } = await client.listControllers({});
			return { controller: controllers.find(({ name }) => name === "agent"), agents, servers };
		};
		await vi.waitFor(async () => {
			const { controller, agents, servers } = await shown();
			expect(controller).toMatchObject({ manages: "music.v1.Artist" });
			expect(controller?.servers).toMatchObject([{ isAgent: true }]);
			expect(agents).toMatchObject([{ name: controller?.servers[0]?.server, id: "" }]);
			expect(servers).toHaveLength(1);
		}, patiently);
		expect(await client.getController({ name: "agent" })).toMatchObject({ agents: [{}] });
		await agent.stop();
		expect(await shown()).toMatchObject({ controller: undefined, agents: [] });
	});

	it("are not shown without the right to report on them, and run nevertheless", async () => {
		const authorizer = new PolicyAuthorizer();
		const operations = ["operator:read", "operator:write", "operator:lease"];
		authorizer.grant("agent", { subject: "agent", rules: [{ operations }] });
		authorizer.grant("other", {
			subject: "other",
			rules: [{ operations: ["operator:report"], type: "internal.v1.Controller", namePrefix: "x" }],
		});
		authorizer.grant("all", { subject: "all", rules: [{ operations: ["*"] }] });
		const server = await startServer({ authorizer, modules: [musicModule()] });
		const tokenFile = join(await temporaryFolder(), "token");
		await writeFile(tokenFile, "agent\n");
		const warnings: string[] = [];
		const logger: Logger = { ...silentLogger, warn: (_, message) => warnings.push(message) };
		await startTestAgent(
			[server.address],
			{ controllersTokenFile: tokenFile },
			{ modules: [agency().module], logger },
		);
		await write(server, "miles");
		await allReconciled(server, "miles");
		await expect
			.poll(() => warnings, patiently)
			.toContain(
				"servers do not show the controllers of this agent: grant operator:report on internal.v1.Controller to their token",
			);
		expect((await controllersAt(server.address, "all").listControllers({})).agents).toEqual([]);
		const report = {
			...{ id: "0123456789abcdef", name: "host/1" },
			controllers: [{ controller: { name: "singers" } }],
		};
		const refused = controllersAt(server.address, "other").reportControllers(report);
		await expect(refused).rejects.toThrow("permission_denied");
	});
});

describeWith("etcd")("two servers of one etcd", () => {
	it("both show the controllers of an agent, which has reported to one of them", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const options = {
			storage: { kind: "etcd", endpoints: [etcd.url] },
			modules: [musicModule()],
		} as const;
		const servers = [await startServer(options), await startServer(options)];
		const addresses = servers.map(({ address }) => address);
		await startTestAgent(addresses, {}, { modules: [agency("sharded").module] });
		for (const address of addresses) {
			const client = controllersAt(address);
			await vi.waitFor(async () => {
				const { controllers, agents } = await client.listControllers({});
				expect(agents).toHaveLength(1);
				const controller = controllers.find(({ name }) => name === "agent");
				expect(controller?.servers).toMatchObject([{ isAgent: true }]);
			}, patiently);
		}
	});
});
