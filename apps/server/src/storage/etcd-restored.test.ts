import { silentLogger, systemRuntime } from "@plinth/runtime";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { itWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { declareEtcdRestored } from "../backup/etcd-restored.ts";
import { UsageError } from "../configuration/usage-error.ts";
import { openStorage } from "./open-storage.ts";

describe("plinth-server etcd-restored", () => {
	it("is refused for another storage, with the way out", async () => {
		await expect(declareEtcdRestored({})).rejects.toThrow(UsageError);
		await expect(declareEtcdRestored({})).rejects.toThrow("--storage etcd");
	});

	itWith("etcd")(
		"stops servers that run, and gives the storage an identity of its own",
		async () => {
			const etcd = await EtcdProcess.start();
			onTestFinished(() => etcd.dispose());
			const choice = { kind: "etcd", endpoints: [etcd.url] } as const;
			const failed = Promise.withResolvers<Error>();
			const before = await openStorage(choice, systemRuntime, silentLogger, {
				onFailed: failed.resolve,
			});
			onTestFinished(() => before.close());
			expect(before.identity).toBeUndefined();
			expect(await declareEtcdRestored({ etcd: choice })).toMatch(/^started incarnation \w{26} /);
			expect((await failed.promise).message).toContain("a different incarnation");
			const after = await openStorage(choice, systemRuntime, silentLogger);
			onTestFinished(() => after.close());
			expect(after.identity).toMatchObject({ restores: 1 });
		},
	);
});
