import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type OwnerReference, OwnerReferenceSchema, ResourceService } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { Artist } from "../testdata/music.ts";
import type { Server } from "./server.ts";

/** The part of an access file with a token, `<user>-token`, and the policies of each user. */
export function tokensOf(users: Readonly<Record<string, string>>): string {
	const entries = Object.entries(users).map(
		([user, policies]) =>
			`  - { subject: ${user}, sha256: ${tokenHash(`${user}-token`)}, policies: [${policies}] }\n`,
	);
	return `tokens:\n${entries.join("")}`;
}

/** A transport whose calls carry the token. */
export function transportWith(baseUrl: string, token: string): Transport {
	return createConnectTransport({
		baseUrl,
		httpVersion: "2",
		interceptors: [
			(next) => (request) => {
				request.header.set("authorization", `Bearer ${token}`);
				return next(request);
			},
		],
	});
}

/** A client with the user's token. */
export function clientAs(server: Server, user: string): Client<typeof ResourceService> {
	return createClient(ResourceService, transportWith(server.address, `${user}-token`));
}

/** The ID of an artist that most callers may not read. */
export function secret(name: string) {
	return idOf(Artist, name, { namespace: "secret" });
}

/** A reference to such an artist as an owner. */
export function ownedBySecret(name: string, uid: string): OwnerReference {
	const { type, tenancy } = secret(name);
	return create(OwnerReferenceSchema, {
		...{ name, uid },
		...(type && { type }),
		...(tenancy && { tenancy }),
	});
}

/** `ok`, or the code and the message of the failure. */
export async function outcome(call: Promise<unknown>): Promise<string> {
	try {
		await call;
		return "ok";
	} catch (failure) {
		const { code, rawMessage } = ConnectError.from(failure);
		return `${Code[code]}: ${rawMessage}`;
	}
}
