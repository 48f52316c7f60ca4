import { create } from "@bufbuild/protobuf";
import { ServerSchema } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { expect, it } from "vitest";
import type { Io } from "../io.ts";
import { warnOfMissing } from "./missing-servers.ts";

it("warns once of a server that has not reported on all that was asked", () => {
	const lines: string[] = [];
	const server = (name: string, missing = "") => create(ServerSchema, { name, missing });
	const late = "did not respond in time";
	warnOfMissing(
		[server("host/1"), server("host/2", late), server("host/2", late), server("host/2")],
		{ err: (text: string) => void lines.push(text), color: false } as unknown as Io,
	);
	expect(lines).toHaveLength(1);
	expect(lines[0]).toContain(`what host/2 does is not shown: it ${late}`);
});
