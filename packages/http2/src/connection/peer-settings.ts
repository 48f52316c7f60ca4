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
	/** The streams that this side may have open. Before the peer declares its limit, the smallest one that is recommended. */
	maxConcurrentStreams = 100;

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
			case setting.noRfc7540Priorities:
				if (value > 1) {
					throw new ConnectionError(
						errorCode.protocolError,
						`setting ${identifier} must be 0 or 1, got: ${value}`,
					);
				}
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
