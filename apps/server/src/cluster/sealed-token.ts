import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { ControllerService } from "@plinth/proto";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";

/**
 * The header of a question to another server that carries the token of the caller, so that only that server can read it:
 * not one that listens at its address by now, one that passes the question on, or the network.
 */
export const sealedTokenHeader = "x-plinth-sealed-token";

/** Services that other servers are asked for, and that change nothing. */
const reporting: ReadonlySet<string> = new Set([
	ControllerService.typeName,
	ServerService.typeName,
]);

const cipher = "aes-256-gcm";
const bytes = { key: 32, nonce: 12, tag: 16 } as const;

/** A longer header is not looked at: tokens are shorter. In characters. */
const maxLength = 16 * 1024;

/** Seals a token for the server that has the secret, for calls of the services that report, and no others. */
export function sealToken(token: string, secret: string): string {
	const nonce = randomBytes(bytes.nonce);
	const sealing = createCipheriv(cipher, keyOf(secret), nonce).setAAD(purpose);
	const text = Buffer.concat([sealing.update(token, "utf8"), sealing.final()]);
	return Buffer.concat([nonce, text, sealing.getAuthTag()]).toString("base64url");
}

/**
 * Replaces the sealed token of a question by the token, so that it is checked like that of any other call. Other services
 * ignore the header: a server that passes on what another one has sealed gets nothing but reports.
 *
 * @throws ConnectError Unauthenticated if it was sealed for another server.
 */
export function openSealedToken(
	{ service, requestHeader }: Pick<HandlerContext, "service" | "requestHeader">,
	secret: string,
): void {
	if (!reporting.has(service.typeName)) {
		return;
	}
	const sealed = requestHeader.get(sealedTokenHeader);
	if (sealed !== null) {
		requestHeader.set("authorization", `Bearer ${unsealed(sealed, secret)}`);
	}
}

function unsealed(sealed: string, secret: string): string {
	const all = sealed.length > maxLength ? Buffer.alloc(0) : Buffer.from(sealed, "base64url");
	const nonce = all.subarray(0, bytes.nonce);
	const text = all.subarray(bytes.nonce, -bytes.tag);
	try {
		const opening = createDecipheriv(cipher, keyOf(secret), nonce, { authTagLength: bytes.tag })
			.setAAD(purpose)
			.setAuthTag(all.subarray(-bytes.tag));
		return Buffer.concat([opening.update(text), opening.final()]).toString("utf8");
	} catch {
		const problem = `${sealedTokenHeader} was not sealed for this server`;
		throw new ConnectError(problem, Code.Unauthenticated);
	}
}

const purpose = Buffer.from("plinth.cluster.v1 sealed token");

function keyOf(secret: string): Buffer {
	return Buffer.from(hkdfSync("sha256", secret, "", purpose, bytes.key));
}
