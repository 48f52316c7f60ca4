import { frameType } from "./frames/frame.ts";
import type { Frame } from "./frames.fixture.ts";
import { HpackDecoder } from "./hpack/decoder.ts";
import type { Fields } from "./http2.ts";

/** One side of a connection, which sends bytes as a test chooses, and what it has received. */
export class RawPeer {
	/** All that were received. */
	readonly frames: Frame[] = [];
	readonly #decoder = new HpackDecoder();

	/** Received frames of a type, of all streams or of one. */
	of(type: number, id?: number): readonly Frame[] {
		return this.frames.filter((each) => each.type === type && (id === undefined || each.id === id));
	}

	/** The code of the RST_STREAM that a stream has received. */
	resetCode(id: number): number | undefined {
		return this.of(frameType.rstStream, id)[0]?.payload.readUInt32BE();
	}

	/** The code of the last GOAWAY. */
	get goawayCode(): number | undefined {
		return this.of(frameType.goaway).at(-1)?.payload.readUInt32BE(4);
	}

	/** The fields of received HEADERS: to be called once for each, in order. */
	decode({ payload }: Frame): Fields {
		return this.#decoder.decode(payload, 0, payload.length, 1_000_000).fields;
	}
}
