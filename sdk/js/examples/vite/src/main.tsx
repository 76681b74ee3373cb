import { TidegateClient } from "@tidegate/client";
import { TidegateProvider } from "@tidegate/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat";

const client = new TidegateClient({ baseUrl: import.meta.env.VITE_TIDEGATE });

// The address of the page keeps the session: after a reload it is shown again.
const sessionId = location.hash.slice(1) || (await client.sessions.create()).id;
location.hash = sessionId;

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <TidegateProvider client={client}>
      <Chat sessionId={sessionId} />
    </TidegateProvider>
  </StrictMode>,
);
