#!/usr/bin/env node
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("protoc-gen-es-comments")) {
	void import("@plinth/proto-comments/process").then(({ runProcess }) => runProcess());
}
