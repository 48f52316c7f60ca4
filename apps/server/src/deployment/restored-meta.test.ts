import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { Deployment } from "@plinth/db-constraint";
import { DeploymentService } from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { idOf } from "@plinth/resource";
import { backupFile, restoreFile } from "@plinth/storage-sqlite";
import { temporaryFolder } from "@plinth/test-support";
import { freePort } from "@plinth/test-support/ports";
import { expect, it, vi } from "vitest";
import { musicModule, toursModule } from "../../testdata/music.ts";
import { transportWith } from "../callers.fixture.ts";
import type { Server } from "../server.ts";
import { databaseFile } from "../storage/open-storage.ts";
import { credentialFile, startDeployment } from "./started-deployment.fixture.ts";

/** What the server says of itself. */
async function readyz({ address }: Server): Promise<readonly [number, string]> {
	const response = await fetch(`${address}/readyz`);
	return [response.status, await response.text()];
}

/** The uid of a Deployment of a meta deployment. */
async function uidOf({ client }: Server, name: string): Promise<string | undefined> {
	const { resource } = await client.read({ id: idOf(Deployment, name) });
	return resource?.id?.uid;
}

/**
 * A meta deployment that was restored from a backup, which lacks `tours`. That has stopped, and `music` knows it.
 */
async function startRestored() {
	const file = credentialFile();
	const [folder, toursFolder] = [await temporaryFolder(), await temporaryFolder()];
	const path = join(folder, databaseFile);
	const internalPort = await freePort();
	const storage = { kind: "sqlite", directory: folder } as const;
	const startMeta = () => startDeployment("meta", file, { internalPort, storage });
	const early = await startMeta();
	const metaAddresses = [early.internal];
	const { server: music } = await startDeployment("music", file, {
		metaAddresses,
		modules: [musicModule()],
	});
	await early.server.stop();
	const backup = join(await temporaryFolder(), "backup.sqlite");
	await backupFile({ path, to: backup });
	const before = await startMeta();
	const startTours = () =>
		startDeployment("tours", file, {
			metaAddresses,
			modules: [toursModule()],
			storage: { kind: "sqlite", directory: toursFolder },
		});
	const tours = await startTours();
	const uid = await uidOf(before.server, "tours-r1");
	const deployments = createClient(DeploymentService, transportWith(music.address, ""));
	await vi.waitFor(
		async () => {
			const known = (await deployments.listDeployments({})).deployments;
			expect(known.map((each) => each.uid)).toContain(uid);
		},
		{ timeout: 300_000, interval: 100 },
	);
	await tours.server.stop();
	await before.server.stop();
	await restoreFile({ path, from: backup });
	const { server: meta } = await startMeta();
	const awaited = [
		"references: this meta deployment was restored, and waits until these deployments have reported what they know:",
		`tours-r1 (${uid}). Start their servers, or delete the Deployments of those that no longer exist`,
	].join(" ");
	await vi.waitFor(async () => expect(await readyz(meta)).toEqual([200, `ready\n${awaited}\n`]), {
		timeout: 300_000,
		interval: 100,
	});
	const completed = () =>
		vi.waitFor(async () => expect(await readyz(meta)).toEqual([200, "ready\n"]), {
			timeout: 300_000,
			interval: 100,
		});
	return { meta, uid, startTours, completed };
}

it("a restored meta deployment names what it waits for, and knows again who has registered since the backup", async () => {
	const { meta, uid, startTours, completed } = await startRestored();
	await startTours();
	await completed();
	expect(await uidOf(meta, "tours-r1")).toBe(uid);
});

it("a restored meta deployment does not wait for one whose Deployment operators delete", async () => {
	const { meta, startTours, uid, completed } = await startRestored();
	await meta.client.delete({ id: idOf(Deployment, "tours-r1") });
	await completed();
	await startTours();
	const again = await uidOf(meta, "tours-r1");
	expect(again).toBeDefined();
	expect(again).not.toBe(uid);
});
