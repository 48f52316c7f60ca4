import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { HistoryService } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Film } from "../cinema.fixture.ts";
import { listVersions } from "./history.ts";

/** Lists versions at a server that has two, and more, but fails after the first page. */
function list(code: Code) {
	const transport = createRouterTransport(({ service }) => {
		service(HistoryService, {
			listVersions: ({ beforeVersion }) => {
				if (beforeVersion !== "") {
					throw new ConnectError(`version ${beforeVersion}`, code);
				}
				return { versions: [{ version: "4" }, { version: "2" }], hasMore: true };
			},
		});
	});
	const session = {
		io: new AbortController(),
		connection: {
			client: (service: typeof HistoryService) => createClient(service, transport),
		} as Parameters<typeof listVersions>[0]["connection"],
		call: <T>(response: Promise<T>) => response,
	};
	return listVersions(session, idOf(Film, "alien"), 20);
}

describe("listVersions", () => {
	it("returns the first page if the server forgets the next one meanwhile", async () => {
		for (const code of [Code.OutOfRange, Code.NotFound]) {
			const { versions, hasMore } = await list(code);
			expect(versions.map(({ version }) => version)).toEqual(["4", "2"]);
			expect(hasMore).toBe(false);
		}
		await expect(list(Code.Unavailable)).rejects.toMatchObject({ code: Code.Unavailable });
	});
});
