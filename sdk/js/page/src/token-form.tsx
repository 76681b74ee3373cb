import { useState } from "react";

interface TokenFormProps {
  readonly isRefused: boolean;
  readonly onToken: (token: string) => void;
}

export function TokenForm({ isRefused, onToken }: TokenFormProps) {
  const [token, setToken] = useState("");
  const enter = (event: React.FormEvent) => {
    event.preventDefault();
    if (token.trim() !== "") onToken(token.trim());
  };
  return (
    <main className="token">
      <form onSubmit={enter}>
        <h1>Tidegate</h1>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          value={token}
          aria-describedby="token-note"
          onChange={(event) => setToken(event.target.value)}
        />
        <p id="token-note" className="note">It is kept until this tab is closed.</p>
        {isRefused && <p role="alert" className="bad">The server does not know this token.</p>}
        <button className="primary" type="submit">Continue</button>
      </form>
    </main>
  );
}
