FROM python:3.12-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PLANNER_HOME=/data
RUN useradd --create-home planner && mkdir /data && chown planner /data
WORKDIR /app
COPY requirements/base.txt requirements/
RUN pip install --no-cache-dir --require-hashes --requirement requirements/base.txt
COPY manage.py ./
COPY planner planner
COPY profiling profiling
COPY templates templates
USER planner
VOLUME /data
EXPOSE 8000
CMD ["gunicorn", "--config", "python:planner.web_server", "planner.wsgi"]
