/** The listener that h2spec tests, with Plinth's own framing. It prints its port. */
import { silentLogger, systemClock } from "@plinth/runtime";
import { defaultListenerLimits } from "../limits.ts";
import { openListener } from "../listener.ts";
import { sendText } from "../request-handler.ts";

const listener = await openListener({
	address: { host: "127.0.0.1", port: 0 },
	http2: "plinth",
	handler: (request, response) => {
		request.discard();
		// Once the request has ended: h2spec breaks the rules in the middle of some.
		const respond = () => sendText(response, 200, "hello");
		if (request.hasArrived) {
			respond();
		} else {
			request.listenToBody({
				bodyChanged: () => {
					if (request.isRead) {
						respond();
					}
				},
			});
		}
	},
	limits: defaultListenerLimits,
	clock: systemClock,
	logger: silentLogger,
});
console.log(listener.address.port);
