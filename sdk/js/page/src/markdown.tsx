import { memo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

const PLUGINS = [remarkGfm];
const SCHEMES = /^(?:https?:|mailto:)/i;

const COMPONENTS: Components = {
  a: ({ href, children }) =>
    href ? <a href={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a> : <span>{children}</span>,
  // An image of another server would report the reader to it.
  img: ({ alt, src }) => <span className="image">[image: {alt || String(src ?? "")}]</span>,
  table: ({ children }) => <div className="wide" tabIndex={0} role="region" aria-label="Table"><table>{children}</table></div>,
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  input: ({ checked }) => <span>{checked ? "☑ " : "☐ "}</span>,
  // Headings of an answer are below those of the page.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
};

/** Text of a model as elements. Markup in it stays text. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown" dir="auto">
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS} urlTransform={safe}>{text}</ReactMarkdown>
    </div>
  );
});

function safe(url: string): string {
  return SCHEMES.test(url.trim()) ? url : "";
}
