import { ConnectionError, errorCode } from "../error-code.ts";
import {
	initialMaxFrameBytes,
	initialWindow,
	largestMaxFrameBytes,
	maxInt31,
	setting,
} from "../frames/frame.ts";
import { initialTableSize } from "../hpack/decoder.ts";

/** What the peer has declared, RFC 9113, section 6.5.2. Where nothing is pushed, only these are needed. */
export class PeerSettings {
	headerTableSize = initialTableSize;
	initialWindowSize = initialWindow;
	maxFrameBytes = initialMaxFrameBytes;
	/** The streams that this side may have open. Before the peer's settings arrive, the smallest limit that is recommended. */
	maxConcurrentStreams = 100;
	readonly #maxEnablePush: number;

	/** @param isClient - whether the peer is a client. Only clients may enable pushes. */
	constructor(isClient: boolean) {
		this.#maxEnablePush = isClient ? 1 : 0;
	}

	/** The first SETTINGS have arrived: streams that they don't limit are not limited. */
	begin(): void {
		this.maxConcurrentStreams = Number.POSITIVE_INFINITY;
	}

	/**
	 * Applies one parameter. Unknown ones are ignored.
	 *
	 * @throws ConnectionError if the value is not allowed.
	 */
	apply(identifier: number, value: number): void {
		switch (identifier) {
			case setting.headerTableSize:
				this.headerTableSize = value;
				break;
			case setting.maxConcurrentStreams:
				this.maxConcurrentStreams = value;
				break;
			case setting.enablePush:
				checkFlag(identifier, value, this.#maxEnablePush);
				break;
			case setting.noRfc7540Priorities:
				checkFlag(identifier, value, 1);
				break;
			case setting.initialWindowSize:
				if (value > maxInt31) {
					throw new ConnectionError(
						errorCode.flowControlError,
						`an initial window of ${value} bytes is too large`,
					);
				}
				this.initialWindowSize = value;
				break;
			case setting.maxFrameSize:
				if (value < initialMaxFrameBytes || value > largestMaxFrameBytes) {
					throw new ConnectionError(
						errorCode.protocolError,
						`a maximum frame size of ${value} bytes is not allowed`,
					);
				}
				this.maxFrameBytes = value;
				break;
			default:
		}
	}
}

function checkFlag(identifier: number, value: number, largest: number): void {
	if (value > largest) {
		const allowed = largest === 0 ? "0" : "0 or 1";
		throw new ConnectionError(
			errorCode.protocolError,
			`setting ${identifier} must be ${allowed}, got: ${value}`,
		);
	}
}
