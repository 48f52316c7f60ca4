import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BackupResponseSchema } from "@plinth/proto/gen/plinth/backup/v1/backup_service_pb.js";
import { describe, expect, it } from "vitest";
import { receiveBackup } from "./receive-backup.ts";

type Part = NonNullable<MessageInitShape<typeof BackupResponseSchema>["part"]>;

const content = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5)];
const sha256 = createHash("sha256")
	.update(Uint8Array.of(1, 2, 3, 4, 5))
	.digest();
const whole: readonly Part[] = [
	{ case: "progress", value: { resources: 1n, of: 2n } },
	{ case: "taken", value: { version: "9", resources: 2n, sizeBytes: 5n } },
	...content.map((value) => ({ case: "chunk", value }) as const),
	{ case: "checksum", value: { sha256 } },
];

/** What is received of a stream of these parts. */
async function receive(parts: readonly Part[]) {
	const written: Uint8Array[] = [];
	const told: string[] = [];
	async function* stream() {
		for (const part of parts) {
			yield create(BackupResponseSchema, { part });
		}
	}
	const { resources, version } = await receiveBackup(stream(), {
		write: async (bytes) => void written.push(bytes),
		progress: (done, of, unit) => told.push(`${done}/${of} ${unit}`),
	});
	return { resources, version, written, told };
}

describe("a backup that comes in", () => {
	it("is what was sent, and tells how far it is", async () => {
		expect(await receive(whole)).toEqual({
			resources: 2n,
			version: "9",
			written: content,
			told: ["1/2 resources", "3/5 bytes", "5/5 bytes"],
		});
	});

	it("is refused where it is cut off after any part", async () => {
		for (let length = 0; length < whole.length; length += 1) {
			await expect(receive(whole.slice(0, length))).rejects.toThrow("its end is missing");
		}
	});

	it("is refused where a part is missing, changed, exchanged or too much", async () => {
		const without = (at: number) => whole.filter((_, index) => index !== at);
		await expect(receive(without(2))).rejects.toThrow("its checksum is wrong");
		const changed: Part = { case: "chunk", value: Uint8Array.of(1, 2, 4) };
		await expect(receive(whole.with(2, changed))).rejects.toThrow("its checksum is wrong");
		const [, , first, second] = whole;
		const exchanged = first && second ? whole.with(2, second).with(3, first) : [];
		await expect(receive(exchanged)).rejects.toThrow("its checksum is wrong");
		await expect(receive([...whole, changed])).rejects.toThrow("data after its checksum");
	});
});
