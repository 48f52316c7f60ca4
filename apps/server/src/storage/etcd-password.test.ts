import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { StorageUnavailable } from "@plinth/storage";
import { EtcdProcess, etcdctl } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { openStorage } from "./open-storage.ts";

describeWith("etcd")("the password of etcd's user", () => {
	it("is read from its file again when it was changed", async () => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-password-"));
		onTestFinished(() => rm(directory, { recursive: true }));
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const rights = ["--endpoints", etcd.url];
		for (const user of ["root", "plinth"]) {
			etcdctl(...rights, "user", "add", `${user}:secret`);
			etcdctl(...rights, "user", "grant-role", user, "root");
		}
		etcdctl(...rights, "auth", "enable");
		const passwordFile = join(directory, "password");
		await writeFile(passwordFile, "secret\n");
		const auth = { user: "plinth", passwordFile };
		const choice = { kind: "etcd", endpoints: [etcd.url], auth } as const;
		const storage = await openStorage(choice, systemRuntime, silentLogger);
		onTestFinished(() => storage.close());
		await storage.backend.catchUp(new AbortController().signal);
		// The user, its password and its tokens are other ones now.
		const root = [...rights, "--user", "root:secret"];
		etcdctl(...root, "user", "delete", "plinth");
		etcdctl(...root, "user", "add", "plinth:changed");
		etcdctl(...root, "user", "grant-role", "plinth", "root");
		const refused = storage.backend.catchUp(new AbortController().signal);
		await expect(refused).rejects.toThrow(StorageUnavailable);
		await expect(refused).rejects.toThrow('etcd rejects user "plinth"');
		await writeFile(passwordFile, "changed\n");
		await storage.backend.catchUp(new AbortController().signal);
	});
});
